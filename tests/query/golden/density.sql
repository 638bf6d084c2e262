SELECT QUARTILES(rh), DECILES(temp_c) AS d, PROBABILITY(rh > 80 OR location LIKE 'd%') AS p, PROBABILITY(rh IS NULL) FILTER (WHERE temp_c > 3), OUTLIERS(rh, 3), PREDICT(rh, temp_c = 20, "PM2.5" = 3) AS guess
GROUP BY CELL(2)
