"""Data of the pages of surveys: a client in JavaScript, a form, and the template that Protocol.to_html fills."""
