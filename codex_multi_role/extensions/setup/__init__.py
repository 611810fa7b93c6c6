"""What a person does before a run: a team of their own, settings, schemas for editors, a look at the machine."""
