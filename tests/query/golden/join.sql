SELECT a.cell, a.m - b.m AS difference, b.m
FROM (SELECT CELL(4) AS cell, BUCKET('1d') AS day, MEAN(rh) AS m WHERE time < '2025-02-01' GROUP BY CELL(4), BUCKET('1d')) AS a
JOIN (SELECT CELL(4) AS place, BUCKET('1d') AS day, MEAN(rh) AS m FROM other GROUP BY CELL(4), BUCKET('1d')) AS b ON a.cell = b.place AND a.day = b.day
WHERE a.m > 3 OR NOT b.m BETWEEN 1 AND 2
ORDER BY difference DESC
LIMIT 5
