-- k_anonymity: classes smaller than k.  Sweeney 2002.
-- reads:   classes(class_id, n, suppressed)
-- params:  $k
-- returns: class_id, n
SELECT class_id, n FROM classes WHERE NOT suppressed AND n < $k
