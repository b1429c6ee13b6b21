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
set output '/tmp/h35/mixtures.svg'
$series1 << EOD
6288 5794.43943
44544 49849.541
8816 8597.6259
6304 5794.43943
44544 49849.541
9008 8597.6259
6338 5794.43943
6422 5825.90019
45275 49849.541
9015 8597.6259
4992 4964.88463
31744 34884.3831
6944 6335.93174
4965 4964.88463
31470 34884.3831
6994 6335.93174
4691 4964.88463
30411 34884.3831
6583 6088.25459
4612 4964.88463
30376 34884.3831
6583 6088.25459
3848 3657.33861
4357 4774.90109
28934 30250.9201
6131 5216.82467
EOD
$series2 << EOD
4912 4811.35172
39936 43489.3531
7280 6764.57034
4928 4811.35172
40960 43489.3531
7360 6764.57034
4969 4811.35172
40706 43489.3531
7376 6764.57034
4256 3928.55819
26112 29381.6342
5680 5303.872
4193 3928.55819
26032 29381.6342
5672 5303.872
4021 3928.55819
26373 29381.6342
5530 5215.00827
3955 3928.55819
26084 29381.6342
5448 5215.00827
4916 4663.74735
EOD
$series3 << EOD
27136 27439.5652
26859 27439.5652
26695 27439.5652
9691 7665.00048
2139 2332.28493
EOD
$series4 << EOD
1712 1463.07846
1686 1463.07846
1611 1463.07846
1633 1463.07846
1575 1447.52407
EOD
$series5 << EOD
2644 2961.68
2691 2961.68
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
set output '/tmp/h35/mixtures.png'
$series1 << EOD
6288 5794.43943
44544 49849.541
8816 8597.6259
6304 5794.43943
44544 49849.541
9008 8597.6259
6338 5794.43943
6422 5825.90019
45275 49849.541
9015 8597.6259
4992 4964.88463
31744 34884.3831
6944 6335.93174
4965 4964.88463
31470 34884.3831
6994 6335.93174
4691 4964.88463
30411 34884.3831
6583 6088.25459
4612 4964.88463
30376 34884.3831
6583 6088.25459
3848 3657.33861
4357 4774.90109
28934 30250.9201
6131 5216.82467
EOD
$series2 << EOD
4912 4811.35172
39936 43489.3531
7280 6764.57034
4928 4811.35172
40960 43489.3531
7360 6764.57034
4969 4811.35172
40706 43489.3531
7376 6764.57034
4256 3928.55819
26112 29381.6342
5680 5303.872
4193 3928.55819
26032 29381.6342
5672 5303.872
4021 3928.55819
26373 29381.6342
5530 5215.00827
3955 3928.55819
26084 29381.6342
5448 5215.00827
4916 4663.74735
EOD
$series3 << EOD
27136 27439.5652
26859 27439.5652
26695 27439.5652
9691 7665.00048
2139 2332.28493
EOD
$series4 << EOD
1712 1463.07846
1686 1463.07846
1611 1463.07846
1633 1463.07846
1575 1447.52407
EOD
$series5 << EOD
2644 2961.68
2691 2961.68
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
