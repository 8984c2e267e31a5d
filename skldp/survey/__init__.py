"""Data of the pages of surveys: the JavaScript client and the template that Protocol.to_html fills. No Python."""
