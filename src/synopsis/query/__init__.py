"""Words to plan to answers: a question in SQL or JSON is read, bound to a sketch, evaluated, answered with bounds."""
