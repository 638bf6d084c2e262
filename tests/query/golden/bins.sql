SELECT COUNT(*), STDDEV_SAMP(rh), VAR_SAMP(rh), COVAR_SAMP(rh, temp_c)
GROUP BY BIN(rh), BIN(temp_c, 0.5), BUCKET('1mo', 'Asia/Tokyo')
