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
8816 8607.16324
6304 5804.91616
44544 49800.0768
9008 8607.16324
6338 5804.91616
6422 5836.47833
45275 49800.0768
9015 8607.16324
4992 4971.27915
31744 34840.2851
6944 6337.43267
4965 4971.27915
31470 34840.2851
6994 6337.43267
4691 4971.27915
30411 34840.2851
6583 6089.68647
4612 4971.27915
30376 34840.2851
6583 6089.68647
3848 3655.56562
4357 4780.71044
28934 30216.3863
6131 5211.71934
EOD
$series2 << EOD
4912 4814.24209
39936 43433.5244
7280 6765.79444
4928 4814.24209
40960 43433.5244
7360 6765.79444
4969 4814.24209
40706 43433.5244
7376 6765.79444
4256 3933.22683
26112 29393.6434
5680 5311.01774
4193 3933.22683
26032 29393.6434
5672 5311.01774
4021 3933.22683
26373 29393.6434
5530 5222.04847
3955 3933.22683
26084 29393.6434
5448 5222.04847
4916 4667.4482
EOD
$series3 << EOD
27136 27455.6076
26859 27455.6076
26695 27455.6076
9691 7672.54458
2139 2337.81449
EOD
$series4 << EOD
1712 1643.45792
1686 1643.45792
1611 1643.45792
1633 1643.45792
1575 1626.34777
EOD
$series5 << EOD
2644 2957.95755
2691 2957.95755
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
8816 8607.16324
6304 5804.91616
44544 49800.0768
9008 8607.16324
6338 5804.91616
6422 5836.47833
45275 49800.0768
9015 8607.16324
4992 4971.27915
31744 34840.2851
6944 6337.43267
4965 4971.27915
31470 34840.2851
6994 6337.43267
4691 4971.27915
30411 34840.2851
6583 6089.68647
4612 4971.27915
30376 34840.2851
6583 6089.68647
3848 3655.56562
4357 4780.71044
28934 30216.3863
6131 5211.71934
EOD
$series2 << EOD
4912 4814.24209
39936 43433.5244
7280 6765.79444
4928 4814.24209
40960 43433.5244
7360 6765.79444
4969 4814.24209
40706 43433.5244
7376 6765.79444
4256 3933.22683
26112 29393.6434
5680 5311.01774
4193 3933.22683
26032 29393.6434
5672 5311.01774
4021 3933.22683
26373 29393.6434
5530 5222.04847
3955 3933.22683
26084 29393.6434
5448 5222.04847
4916 4667.4482
EOD
$series3 << EOD
27136 27455.6076
26859 27455.6076
26695 27455.6076
9691 7672.54458
2139 2337.81449
EOD
$series4 << EOD
1712 1643.45792
1686 1643.45792
1611 1643.45792
1633 1643.45792
1575 1626.34777
EOD
$series5 << EOD
2644 2957.95755
2691 2957.95755
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
