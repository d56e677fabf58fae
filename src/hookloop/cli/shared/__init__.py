"""What several commands are made of: arguments, output, tables."""
