"""One module per family of tables: columns of strings in, rows of the schema out."""
