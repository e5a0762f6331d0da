"""``python -m duckanon.dbt``: the folder of the dbt package, for ``packages.yml``."""

import sys

from duckanon.dbt import package_folder

if __name__ == "__main__":
    sys.stdout.write(f"{package_folder()}\n")
