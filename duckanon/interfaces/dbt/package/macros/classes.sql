{#
  What the tests share. Classes are formed by the bytes of the values as well as by the values: a collation would put
  texts into one class that anybody can tell apart. Names are always quoted.
#}
{% macro column(test, parameter, name) -%}
    {%- if name is not string or not name -%}
        {%- do exceptions.raise_compiler_error(test ~ ": " ~ parameter ~ " must be the name of a column.") -%}
    {%- endif -%}
    "{{ name | replace('"', '""') }}"
{%- endmacro %}

{% macro class_columns(test, quasi_identifiers) -%}
    {%- if quasi_identifiers is string or quasi_identifiers is not sequence or not quasi_identifiers -%}
        {%- do exceptions.raise_compiler_error(test ~ ": quasi_identifiers must be a list of columns, such as [age, zip].") -%}
    {%- endif -%}
    {%- for name in quasi_identifiers -%}
        {%- set quoted = duckanon.column(test, 'every quasi-identifier', name) -%}
        {{ quoted }} as key_{{ loop.index }}, encode(cast({{ quoted }} as varchar)) as bytes_{{ loop.index }}
        {%- if not loop.last %}, {% endif -%}
    {%- endfor -%}
{%- endmacro %}

{% macro class_keys(quasi_identifiers) -%}
    {%- for name in quasi_identifiers -%}
        key_{{ loop.index }}, bytes_{{ loop.index }}
        {%- if not loop.last %}, {% endif -%}
    {%- endfor -%}
{%- endmacro %}

{% macro require_integer(test, parameter, value) -%}
    {%- if value is not integer or value < 1 -%}
        {%- do exceptions.raise_compiler_error(test ~ ": " ~ parameter ~ " must be an integer of at least 1.") -%}
    {%- endif -%}
{%- endmacro %}

{% macro require_number(test, parameter, value) -%}
    {%- if value is boolean or value is not number or value < 1 -%}
        {%- do exceptions.raise_compiler_error(test ~ ": " ~ parameter ~ " must be a number of at least 1.") -%}
    {%- endif -%}
{%- endmacro %}
