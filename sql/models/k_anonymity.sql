-- k_anonymity: the members of each class.  Sweeney 2002.
-- reads:   classes(class_id, n, suppressed)
-- params:
-- returns: class_id, n, value
SELECT class_id, n, n AS value FROM classes WHERE NOT suppressed
