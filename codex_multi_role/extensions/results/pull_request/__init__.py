"""A run as a pull request (on GitLab, a merge request): its text, and creating it with ``gh`` or ``glab``."""
