{#
  k_anonymous: the sizes of the classes smaller than k.  Sweeney 2002.
  With an entity_key persons are counted, without one rows; all rows without a key are one person.
#}
{% test k_anonymous(model, quasi_identifiers, k, entity_key=none) %}
{%- do duckanon.require_integer('k_anonymous', 'k', k) -%}
{%- set columns = duckanon.class_columns('k_anonymous', quasi_identifiers) -%}
{%- set keys = duckanon.class_keys(quasi_identifiers) -%}
with counted_rows as (
    select {{ columns }}
        {%- if entity_key is not none %}, {{ duckanon.column('k_anonymous', 'entity_key', entity_key) }} as entity {%- endif %}
    from {{ model }}
),

classes as (
    select
        {%- if entity_key is none %}
        count(*) as class_size
        {%- else %}
        count(distinct entity) + max(case when entity is null then 1 else 0 end) as class_size
        {%- endif %}
    from counted_rows
    group by {{ keys }}
)

select class_size from classes where class_size < {{ k }}
{% endtest %}
