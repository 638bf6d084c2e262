"""Words to plan to answers: a question in SQL is read, bound to a sketch, evaluated, and answered with bounds."""
