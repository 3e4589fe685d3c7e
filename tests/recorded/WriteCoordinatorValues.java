import java.util.*; import java.nio.*;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.*;
import org.apache.kafka.coordinator.group.generated.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
public class WriteCoordinatorValues {
  static void p(String n, int v, Message m){ byte[] b=MessageUtil.toVersionPrefixedBytes((short)v,m); StringBuilder s=new StringBuilder(); for(byte x:b) s.append(String.format("%02x",x)); System.out.println(n+" "+v+" "+s); }
  static byte[] arr(ByteBuffer b){ byte[] x=new byte[b.remaining()]; b.get(x); return x; }
  public static void main(String[] a){
    Uuid id=Uuid.fromString("U9CpafulTVqvC0H8rKsSsA");
    for(int v=0;v<=4;v++){ OffsetCommitValue o=new OffsetCommitValue().setOffset(-3+1000L*v).setMetadata(v==2?"":"note \u00e9\"\\\n"+v).setCommitTimestamp(1795205914091L+v);
      if(v>=3)o.setLeaderEpoch(7); if(v==1)o.setExpireTimestamp(1795205999999L); if(v==4)o.setTopicId(id); p("offset_commit",v,o);}
    p("offset_commit_long",4,new OffsetCommitValue().setOffset(5).setMetadata("x".repeat(300)).setCommitTimestamp(1L));
    p("offset_commit_126",4,new OffsetCommitValue().setOffset(5).setMetadata("y".repeat(126)).setCommitTimestamp(1L).setTopicId(id));
    p("offset_commit_127",4,new OffsetCommitValue().setOffset(5).setMetadata("z".repeat(127)).setCommitTimestamp(1L).setTopicId(id));
    OffsetCommitValue un=new OffsetCommitValue().setOffset(6).setMetadata("").setCommitTimestamp(2L).setTopicId(id); un.unknownTaggedFields().add(new org.apache.kafka.common.protocol.types.RawTaggedField(9,new byte[]{1,2,3})); p("offset_commit_unknown_tag",4,un);
    for(int v=0;v<=3;v++) for(int g=0;g<=4;g++) if(v==3||g==3){
      byte[] sub=arr(ConsumerProtocol.serializeSubscription(new ConsumerPartitionAssignor.Subscription(List.of("orders","pay.events"),ByteBuffer.wrap(new byte[]{9,8}),List.of(new TopicPartition("orders",2)),11,Optional.of("rack-a")),(short)v));
      byte[] as=arr(ConsumerProtocol.serializeAssignment(new ConsumerPartitionAssignor.Assignment(List.of(new TopicPartition("orders",0),new TopicPartition("orders",1))),(short)v));
      GroupMetadataValue.MemberMetadata m=new GroupMetadataValue.MemberMetadata().setMemberId("m-1").setClientId("c").setClientHost("/127.0.0.1").setSessionTimeout(45000).setSubscription(sub).setAssignment(as);
      if(g>=1)m.setRebalanceTimeout(300000); if(g>=3)m.setGroupInstanceId("static-1");
      GroupMetadataValue gm=new GroupMetadataValue().setProtocolType("consumer").setGeneration(4).setProtocol("range").setLeader("m-1").setMembers(List.of(m,m.duplicate().setMemberId("m-2").setAssignment(new byte[0])));
      if(g>=2)gm.setCurrentStateTimestamp(1795206777313L); p("group_metadata_sub"+v,g,gm);
      gm.setProtocolType("connect"); p("group_metadata_connect_sub"+v,g,gm);
      ConsumerGroupMemberMetadataValue cm=new ConsumerGroupMemberMetadataValue().setInstanceId("i").setRackId(null).setClientId("c").setClientHost("h").setSubscribedTopicNames(List.of("orders")).setSubscribedTopicRegex("").setRebalanceTimeoutMs(5).setServerAssignor("uniform").setClassicMemberMetadata(new ConsumerGroupMemberMetadataValue.ClassicMemberMetadata().setSessionTimeoutMs(45000).setSupportedProtocols(List.of(new ConsumerGroupMemberMetadataValue.ClassicProtocol().setName("range").setMetadata(sub))));
      if(g==3) p("consumer_group_member_metadata_classic_sub"+v,0,cm);
    }
    p("consumer_group_partition_metadata",0,new ConsumerGroupPartitionMetadataValue().setTopics(List.of(new ConsumerGroupPartitionMetadataValue.TopicMetadata().setTopicId(id).setTopicName("orders").setNumPartitions(3).setPartitionMetadata(List.of(new ConsumerGroupPartitionMetadataValue.PartitionMetadata().setPartition(1).setRacks(List.of("a","b")))))));
    p("streams_group_member_metadata",0,new StreamsGroupMemberMetadataValue().setInstanceId("i").setRackId("r").setClientId("c").setClientHost("h").setRebalanceTimeoutMs(7).setTopologyEpoch(2).setProcessId("p").setUserEndpoint(new StreamsGroupMemberMetadataValue.Endpoint().setHost("eh").setPort(65000)).setClientTags(List.of(new StreamsGroupMemberMetadataValue.KeyValue().setKey("k").setValue("v"))));
    p("streams_group_topology",0,new StreamsGroupTopologyValue().setEpoch(3).setSubtopologies(List.of(new StreamsGroupTopologyValue.Subtopology().setSubtopologyId("0").setSourceTopics(List.of("a","b")).setCopartitionGroups(List.of(new StreamsGroupTopologyValue.CopartitionGroup().setSourceTopics(List.of((short)0,(short)1)))))));
  }
}
