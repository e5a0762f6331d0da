"""Labels of published tables, whoever made them: their texts, their levels in hierarchies, the values they cover."""
