select
    patient_id,
    name,
    birth_date,
    sex,
    zip,
    diagnosis
from {{ ref("raw_patients") }}
where diagnosis is not null
