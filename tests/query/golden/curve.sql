SELECT CELL(3), DENSITY(temp_c, 0.5) AS d WHERE location LIKE '6g%' OR rh > 80 GROUP BY CELL(3)
