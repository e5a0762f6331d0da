"""Studies that anybody can rerun: tables, releases, figures and a page of results."""
