set encoding utf8
set linetype 1 linecolor rgb '#0072B2' linewidth 2 pointtype 7
set linetype 2 linecolor rgb '#E69F00' linewidth 2 pointtype 5
set linetype 3 linecolor rgb '#009E73' linewidth 2 pointtype 9
set linetype 4 linecolor rgb '#CC79A7' linewidth 2 pointtype 13
set linetype 5 linecolor rgb '#56B4E9' linewidth 2 pointtype 11
set linetype 6 linecolor rgb '#D55E00' linewidth 2 pointtype 4
set linetype 7 linecolor rgb '#F0E442' linewidth 2 pointtype 6
set linetype 8 linecolor rgb '#8C8C8C' linewidth 2 pointtype 8
set grid linetype 1 linecolor rgb '#DDDDDD' linewidth 1
set border linecolor rgb '#444444'
set terminal svg size 700,650 font 'sans,12' background 'white'
set output 'lib/trinity/report/pictures/mixtures.svg'
$series1 << EOD
6288 5804.91616
44544 49800.0768
8816 8608.31764
6304 5804.91616
44544 49800.0768
9008 8608.31764
6338 5804.91616
6422 5836.47833
45275 49800.0768
9015 8608.31764
4992 4971.27915
31744 34840.2851
6944 6337.51369
4965 4971.27915
31470 34840.2851
6994 6337.51369
4691 4971.27915
30411 34840.2851
6583 6089.76461
4612 4971.27915
30376 34840.2851
6583 6089.76461
3848 3655.56562
4357 4780.71044
28934 28873.4197
6131 5211.77413
EOD
$series2 << EOD
4912 4818.88533
39936 43433.5244
7280 6781.49744
4928 4818.88533
40960 43433.5244
7360 6781.49744
4969 4818.88533
40706 43433.5244
7376 6781.49744
4256 3955.02639
26112 28403.7246
5680 5389.7652
4193 3955.02639
26032 28403.7246
5672 5389.7652
4021 3955.02639
26373 28403.7246
5530 5299.6823
3955 3955.02639
26084 28403.7246
5448 5299.6823
4916 4728.15822
EOD
$series3 << EOD
27136 26290.6155
26859 26290.6155
26695 26290.6155
9691 7439.51577
2139 2149.94486
EOD
$series4 << EOD
1712 1423.52041
1686 1423.52041
1611 1423.52041
1633 1423.52041
1575 1408.348
EOD
$series5 << EOD
2644 3222.05756
2691 3222.05756
EOD
set xlabel 'given tokens per second and GPU' noenhanced
set ylabel 'told tokens per second and GPU' noenhanced
set logscale x
set logscale y
set key outside top center horizontal
set offsets graph 0.03, graph 0.03, graph 0.05, graph 0.05
plot $series1 using 1:2 with points pointsize 0.9 linetype 1 title 'GB300, experts' noenhanced, \
  $series2 using 1:2 with points pointsize 0.9 linetype 2 title 'GB200, experts' noenhanced, \
  $series3 using 1:2 with points pointsize 0.9 linetype 3 title 'B200, experts' noenhanced, \
  $series4 using 1:2 with points pointsize 0.9 linetype 4 title 'H100-80GB, experts' noenhanced, \
  $series5 using 1:2 with points pointsize 0.9 linetype 5 title 'B300, experts' noenhanced
unset output
reset session
set encoding utf8
set linetype 1 linecolor rgb '#0072B2' linewidth 2 pointtype 7
set linetype 2 linecolor rgb '#E69F00' linewidth 2 pointtype 5
set linetype 3 linecolor rgb '#009E73' linewidth 2 pointtype 9
set linetype 4 linecolor rgb '#CC79A7' linewidth 2 pointtype 13
set linetype 5 linecolor rgb '#56B4E9' linewidth 2 pointtype 11
set linetype 6 linecolor rgb '#D55E00' linewidth 2 pointtype 4
set linetype 7 linecolor rgb '#F0E442' linewidth 2 pointtype 6
set linetype 8 linecolor rgb '#8C8C8C' linewidth 2 pointtype 8
set grid linetype 1 linecolor rgb '#DDDDDD' linewidth 1
set border linecolor rgb '#444444'
set terminal pngcairo size 700,650 font 'sans,10' background 'white'
set output 'lib/trinity/report/pictures/mixtures.png'
$series1 << EOD
6288 5804.91616
44544 49800.0768
8816 8608.31764
6304 5804.91616
44544 49800.0768
9008 8608.31764
6338 5804.91616
6422 5836.47833
45275 49800.0768
9015 8608.31764
4992 4971.27915
31744 34840.2851
6944 6337.51369
4965 4971.27915
31470 34840.2851
6994 6337.51369
4691 4971.27915
30411 34840.2851
6583 6089.76461
4612 4971.27915
30376 34840.2851
6583 6089.76461
3848 3655.56562
4357 4780.71044
28934 28873.4197
6131 5211.77413
EOD
$series2 << EOD
4912 4818.88533
39936 43433.5244
7280 6781.49744
4928 4818.88533
40960 43433.5244
7360 6781.49744
4969 4818.88533
40706 43433.5244
7376 6781.49744
4256 3955.02639
26112 28403.7246
5680 5389.7652
4193 3955.02639
26032 28403.7246
5672 5389.7652
4021 3955.02639
26373 28403.7246
5530 5299.6823
3955 3955.02639
26084 28403.7246
5448 5299.6823
4916 4728.15822
EOD
$series3 << EOD
27136 26290.6155
26859 26290.6155
26695 26290.6155
9691 7439.51577
2139 2149.94486
EOD
$series4 << EOD
1712 1423.52041
1686 1423.52041
1611 1423.52041
1633 1423.52041
1575 1408.348
EOD
$series5 << EOD
2644 3222.05756
2691 3222.05756
EOD
set xlabel 'given tokens per second and GPU' noenhanced
set ylabel 'told tokens per second and GPU' noenhanced
set logscale x
set logscale y
set key outside top center horizontal
set offsets graph 0.03, graph 0.03, graph 0.05, graph 0.05
plot $series1 using 1:2 with points pointsize 0.9 linetype 1 title 'GB300, experts' noenhanced, \
  $series2 using 1:2 with points pointsize 0.9 linetype 2 title 'GB200, experts' noenhanced, \
  $series3 using 1:2 with points pointsize 0.9 linetype 3 title 'B200, experts' noenhanced, \
  $series4 using 1:2 with points pointsize 0.9 linetype 4 title 'H100-80GB, experts' noenhanced, \
  $series5 using 1:2 with points pointsize 0.9 linetype 5 title 'B300, experts' noenhanced
unset output
