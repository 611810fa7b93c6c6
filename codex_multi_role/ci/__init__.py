"""A run as a CI system wants to be told of it: JUnit XML, a Markdown summary, annotations. Nothing here prints."""
