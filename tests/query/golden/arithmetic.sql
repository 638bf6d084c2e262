SELECT MAX(temp_c) - MIN(temp_c), SUM(rh) / COUNT(rh) * 100 AS percent, (MAX(rh) - MIN(rh)) / STD(rh),
  MEAN(rh) - (MEAN(temp_c) - 3) - 1, -MEAN(rh) AS below
