{#
  Stops a run before it begins where a model that calls anonymize() is kept in a way that is not one checked table: a view
  makes another release whenever it is read, an incremental model or a snapshot adds releases that nobody checked together,
  and an ephemeral model makes one for each model that reads it.
#}
{% macro refuse_added_releases() %}
    {%- if execute -%}
        {%- for node in graph.nodes.values() | selectattr('resource_type', 'in', ['model', 'snapshot'])
              if node.unique_id in selected_resources or node.config.materialized == 'ephemeral' -%}
            {%- if node.config.materialized not in ['table', 'external'] and node.language == 'sql'
                  and modules.re.search('\\banonymize\\s*\\(', modules.re.sub('(?s)--[^\n]*|/\\*.*?\\*/|\\{#.*?#\\}', ' ', node.raw_code)) -%}
                {%- do exceptions.raise_compiler_error(
                    node.name ~ " calls anonymize() and is materialized as " ~ node.config.materialized
                    ~ ": only a table (or an external file) is one release that was checked. Use materialized='table'."
                ) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}
