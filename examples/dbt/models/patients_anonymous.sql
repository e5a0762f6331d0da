select *
from anonymize(
    '{{ ref("stg_patients") }}',
    quasi_identifiers := ['birth_date', 'sex', 'zip'],
    sensitive := ['diagnosis'],
    identifiers := ['name'],
    entity_key := 'patient_id',
    unlisted := 'error',
    hierarchies := {'birth_date': 'birth_date', 'zip': 'us_zip5'},
    k := 5,
    l := 2
)
