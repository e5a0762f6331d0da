"""``python -m duckanon``: the command line."""

from duckanon.cli import main

if __name__ == "__main__":
    main()
