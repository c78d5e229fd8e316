"""What truth keeps of deep questions: answers, traces, and how they are forgotten."""
