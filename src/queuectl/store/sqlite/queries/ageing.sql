-- ageing: how waiting is rewarded, as stored.
select value
  from config
 where key = 'ageing'
