-- ageing: how waiting is rewarded, as stored.
select value
  from queuectl.config
 where key = 'ageing'
