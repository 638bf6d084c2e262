SELECT AVG(rh), MEDIAN(rh), mean( temp_c ), MAX("PM2.5"), MIN("a ""b""") AS least, COUNT("*"), MEAN(temp_c) AS ""
