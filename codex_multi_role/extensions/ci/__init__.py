"""Reports of a run for CI systems: JUnit XML, a Markdown summary, annotations."""
