"""Reading the times that a question names, from the calendar alone."""
