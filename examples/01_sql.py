"""SQL: anonymize() is a table function, so a release is selected, joined, stored and copied like any other table."""

import tempfile
from pathlib import Path

import duckanon
from duckanon.testing.hospital import write_hospital

with tempfile.TemporaryDirectory() as folder:
    write_hospital(Path(folder) / "hospital.parquet", rows=5_000)

    # A DuckDB connection like any other; on one that you have already, call duckanon.install(connection).
    con = duckanon.connect()
    con.execute("CREATE TABLE patients AS SELECT * FROM read_parquet(?)", [f"{folder}/hospital.parquet"])

    # Columns that are not named (the patient's name, for one) are not published.
    con.execute("""
        CREATE TABLE release AS
        SELECT * FROM anonymize('patients',
            quasi_identifiers := ['birth_date', 'sex', 'zip'],
            sensitive := ['diagnosis'],
            hierarchies := {'zip': 'us_zip5', 'birth_date': 'birth_date'},
            entity_key := 'patient_id',
            k := 5,
            suppression_limit := 0.05)
    """)

    columns = [row[0] for row in con.execute("DESCRIBE release").fetchall()]
    print("columns:", ", ".join(columns))

    # The promise, looked at with nothing but SQL.
    (smallest,) = con.execute("""
        SELECT min(n) FROM (SELECT count(*) AS n FROM release GROUP BY birth_date, sex, zip)
    """).fetchone()
    print("smallest class has at least 5 rows:", smallest >= 5)

    # A file for somebody else; it holds the release only.
    con.execute(f"COPY release TO '{folder}/release.parquet'")
    print("kept rows:", con.execute("SELECT count(*) FROM release").fetchone()[0], "of 5000")
    con.close()
