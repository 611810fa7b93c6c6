"""The pages of a run: live and with decisions (``serve``, extra ``[web]``), and frozen in one file (``report``)."""
