"""``python -m duckanon.interfaces.dbt``: the folder of the dbt package, for ``packages.yml``."""

import sys

from duckanon.interfaces.dbt import package_folder

if __name__ == "__main__":
    sys.stdout.write(f"{package_folder()}\n")
