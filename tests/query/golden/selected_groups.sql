SELECT MEAN(rh), CELL(3) AS place GROUP BY BUCKET('day'), place
