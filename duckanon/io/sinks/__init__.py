"""Where releases go: written beside their target, synced, checked and renamed. A manifest with hashes comes last.

If anything fails, the target keeps its old content and nothing is left behind. A process that is killed can leave a
private folder, which the next run removes, or a commit that is only half done, which the next run and ``verify``
finish. The data file is complete at every instant; after ``recover``, data, reports and manifest belong together.
"""

from duckanon.io.disk import locked, made_folder, os_errors
from duckanon.io.sinks.base import Publishable, Sink, require_apart
from duckanon.io.sinks.commit import recover, unfinished
from duckanon.io.sinks.files import CsvFile, ParquetFile, publish, require_target, require_writable
from duckanon.io.sinks.folder import ParquetFolder
from duckanon.io.sinks.manifest import manifest_path, read_manifest, verify_files
from duckanon.io.sinks.retention import prune
from duckanon.io.sinks.signing import PublicKey, Signer, new_keys
from duckanon.io.sinks.tables import DuckDBTable, TableReports

__all__ = [
    "CsvFile",
    "DuckDBTable",
    "ParquetFile",
    "ParquetFolder",
    "PublicKey",
    "Publishable",
    "Signer",
    "Sink",
    "TableReports",
    "locked",
    "made_folder",
    "manifest_path",
    "new_keys",
    "os_errors",
    "prune",
    "publish",
    "read_manifest",
    "recover",
    "require_apart",
    "require_target",
    "require_writable",
    "unfinished",
    "verify_files",
]
