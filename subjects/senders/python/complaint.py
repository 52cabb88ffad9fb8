"""What a sender's library tells of losses in its log."""

import logging
import sys


class Complaint(logging.Handler):
    """Prints warnings and what is worse, and remembers that there were some."""

    heard = False

    def emit(self, record):
        Complaint.heard = True
        print(record.getMessage(), file=sys.stderr)


def listen():
    logging.getLogger().addHandler(Complaint(logging.WARNING))
