-- A model made of the release, as any other model.
select birth_date, diagnosis, count(*) as patients
from {{ ref("patients_anonymous") }}
group by all
