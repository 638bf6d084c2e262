SELECT here.r - there.r
FROM (SELECT CORRELATION(rh, temp_c) AS r WHERE location LIKE 'd%') AS here, (SELECT CORRELATION(rh, temp_c) AS r) AS there
