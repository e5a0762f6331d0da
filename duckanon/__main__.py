"""``python -m duckanon``: the command line."""

from duckanon.interfaces.cli import main

if __name__ == "__main__":
    main()
