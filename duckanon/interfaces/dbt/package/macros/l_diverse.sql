{#
  l_diverse: the sizes of the classes with too few different values of a sensitive column.  Machanavajjhala et al. 2006.
  kind 'distinct' counts the values; kind 'entropy' asks for the entropy of l equally frequent ones.
#}
{% test l_diverse(model, quasi_identifiers, sensitive, l, kind='distinct') %}
{%- if kind == 'distinct' -%}
    {%- do duckanon.require_integer('l_diverse', 'l', l) -%}
{%- elif kind == 'entropy' -%}
    {%- do duckanon.require_number('l_diverse', 'l', l) -%}
{%- else -%}
    {%- do exceptions.raise_compiler_error("l_diverse: kind must be 'distinct' or 'entropy'.") -%}
{%- endif -%}
{%- set columns = duckanon.class_columns('l_diverse', quasi_identifiers) -%}
{%- set keys = duckanon.class_keys(quasi_identifiers) -%}
with counted_rows as (
    select {{ columns }}, {{ duckanon.column('l_diverse', 'sensitive', sensitive) }} as sensitive
    from {{ model }}
),

class_values as (
    select {{ keys }}, count(*) as n
    from counted_rows
    group by {{ keys }}, sensitive
),

classes as (
    select
        cast(sum(n) as bigint) as class_size,
        count(*) as different_values,
        ln(cast(sum(n) as double)) - sum(n * ln(cast(n as double))) / sum(n) as entropy
    from class_values
    group by {{ keys }}
)

{% if kind == 'distinct' -%}
select class_size, different_values from classes where different_values < {{ l }}
{%- else -%}
select class_size, round(exp(entropy), 3) as equally_frequent_values
from classes
where entropy < ln({{ l }}) - 1e-12
{%- endif %}
{% endtest %}
