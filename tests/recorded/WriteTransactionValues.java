import java.util.*;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.coordinator.transaction.generated.*;
public class WriteTransactionValues {
  static void p(String n, int v, Message m){ byte[] b=MessageUtil.toVersionPrefixedBytes((short)v,m); StringBuilder s=new StringBuilder(); for(byte x:b) s.append(String.format("%02x",x)); System.out.println(n+" "+v+" "+s); }
  static TransactionLogValue.PartitionsSchema of(String topic, Integer... ids){ return new TransactionLogValue.PartitionsSchema().setTopic(topic).setPartitionIds(List.of(ids)); }
  static TransactionLogValue value(){ return new TransactionLogValue().setProducerId(4711).setProducerEpoch((short)3).setTransactionTimeoutMs(60000).setTransactionStatus((byte)1)
    .setTransactionPartitions(List.of(of("orders",0,2),of("__consumer_offsets",5))).setTransactionLastUpdateTimestampMs(1795206777313L).setTransactionStartTimestampMs(1795206777000L); }
  public static void main(String[] a){
    p("key",0,new TransactionLogKey().setTransactionalId("pay \u00e9"));
    p("ongoing",0,value()); p("ongoing",1,value());
    p("tagged",1,value().setPreviousProducerId(4710).setNextProducerId(4712).setClientTransactionVersion((short)2).setNextProducerEpoch((short)0));
    TransactionLogValue un=value().setClientTransactionVersion((short)2); un.unknownTaggedFields().add(new RawTaggedField(9,new byte[]{1,2,3})); p("unknown_tag",1,un);
    for(int v=0;v<=1;v++){
      p("empty",v,value().setTransactionStatus((byte)0).setTransactionPartitions(null).setTransactionStartTimestampMs(-1L));
      p("no_partitions",v,value().setTransactionStatus((byte)4).setTransactionPartitions(List.of()));
      p("other_state",v,value().setTransactionStatus((byte)42));
    }
    for(int s=0;s<=7;s++) p("state_"+s,1,value().setTransactionStatus((byte)s));
  }
}
