SELECT COUNT(*), COUNT(rh), SUM(rh), MEAN(temp_c), STD(temp_c), VAR(temp_c), MIN(rh), MAX(rh),
  COVARIANCE(temp_c, rh), CORRELATION(temp_c, rh), QUANTILE(rh, 0.9)
