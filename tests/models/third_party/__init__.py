"""Two models as another package would bring them: a module and a statement beside it for each."""
