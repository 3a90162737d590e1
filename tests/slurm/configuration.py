"""The test cluster on paper: its nodes, partitions, accounts, and the files that say so."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

USERS = ("qcann", "qcben", "qccid")
CLUSTER = "qctest"
SQL_PASSWORD = "only-on-loopback"


@dataclass(frozen=True)
class NodeKind:
    """``count`` equal nodes named ``<name>-1`` ...; GPUs are of the type ``gpu`` (None: no GPU)."""

    name: str
    count: int
    cpus: int
    memory_mb: int
    gpu: str | None = None
    gpus: int = 0
    features: str = ""
    weight: int = 1

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(f"{self.name}-{i}" for i in range(1, self.count + 1))

    @property
    def range(self) -> str:
        return f"{self.name}-[1-{self.count}]" if self.count > 1 else f"{self.name}-1"


A100 = NodeKind("a100", 2, 16, 64_000, "a100", 4, "a100,nvlink", 20)
V100 = NodeKind("v100", 1, 16, 64_000, "v100", 4, "v100", 10)
CPU = NodeKind("cpu", 3, 32, 64_000, features="avx2", weight=1)
KINDS = (A100, V100, CPU)

ACCOUNTS = f"""\
Cluster - '{CLUSTER}':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'lab':Description='lab':Organization='lab':Fairshare=70
Account - 'course':Description='course':Organization='edu':Fairshare=30:GrpTRES=cpu=8,gres/gpu=1
Account - 'seminar':Description='seminar':Organization='edu':Fairshare=1:GrpJobs=1
Parent - 'lab'
Account - 'vision':Description='vision':Organization='lab':Fairshare=50
Account - 'nlp':Description='nlp':Organization='lab':Fairshare=30
Parent - 'vision'
User - 'qcann':DefaultAccount='vision':Fairshare=10:QOS='normal,high,debug,small,spent'
Parent - 'nlp'
User - 'qcben':DefaultAccount='nlp':Fairshare=10:QOS='normal,high,debug,small'
Parent - 'course'
User - 'qccid':DefaultAccount='course':Fairshare=1:MaxWallDurationPerJob=240:QOS='normal,debug'
Parent - 'seminar'
User - 'qccid':DefaultAccount='course':Fairshare=1:QOS='normal'
"""
"""For ``sacctmgr load``."""


def gres_conf(home: Path) -> str:
    """GPUs are plain files below ``home``."""
    return "".join(f"NodeName={k.range} Name=gpu Type={k.gpu} File={home}/dev/gpu[0-{k.gpus - 1}]\n" for k in KINDS if k.gpu)


def dbd_conf(home: Path, ports: Mapping[str, int], private: str = "") -> str:
    """slurmdbd.conf, with PrivateData if told."""
    return f"""\
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports["dbd"]}
SlurmUser=slurm
AuthType=auth/munge
AuthInfo=socket={home}/munge/socket
CommunicationParameters=NoInAddrAny
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports["sql"]}
StorageUser=slurm
StoragePass={SQL_PASSWORD}
StorageLoc=slurm_acct
LogFile={home}/log/slurmdbd.log
PidFile={home}/run/slurmdbd.pid
{f"PrivateData={private}" if private else ""}
"""


def my_cnf(home: Path, ports: Mapping[str, int]) -> str:
    """For a MariaDB of the cluster's own."""
    sql = home / "sql"
    return f"""\
[mariadbd]
user=mysql
datadir={sql}/data
socket={sql}/socket
pid-file={sql}/pid
log-error={sql}/error.log
bind-address=127.0.0.1
port={ports["sql"]}
skip-name-resolve
skip-log-bin
character-set-server=utf8mb4
innodb_buffer_pool_size=128M
innodb_log_file_size=48M
innodb_lock_wait_timeout=900
innodb_flush_log_at_trx_commit=0
innodb_doublewrite=0
performance_schema=off
"""


def slurm_conf(home: Path, ports: Mapping[str, int]) -> str:
    """slurm.conf: real daemons on virtual nodes."""
    host, h, gpu = socket.gethostname().split(".")[0], home, f"{A100.range},{V100.range}"
    nodes = "\n".join(
        f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[node]} CPUs={k.cpus} Boards=1 Sockets=1 "
        f"CoresPerSocket={k.cpus} ThreadsPerCore=1 RealMemory={k.memory_mb} Weight={k.weight} Feature={k.features}"
        f"{f' Gres=gpu:{k.gpu}:{k.gpus}' if k.gpu else ''} State=UNKNOWN"
        for k in KINDS
        for node in k.nodes
    )
    return f"""\
ClusterName={CLUSTER}
SlurmctldHost={host}(127.0.0.1)
SlurmUser=slurm
SlurmdUser=root
SlurmctldPort={ports["ctld"]}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=cred_expire=5,socket={h}/munge/socket
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={h}/state
SlurmdSpoolDir={h}/spool/%n
SlurmctldPidFile={h}/run/slurmctld.pid
SlurmdPidFile={h}/run/slurmd-%n.pid
SlurmctldLogFile={h}/log/slurmctld.log
SlurmdLogFile={h}/log/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
RebootProgram=/bin/false
ReturnToService=2
MessageTimeout=10
MinJobAge=300
KillWait=2
CompleteWait=0
EpilogMsgTime=0
RequeueExit=98
RequeueExitHold=99
MaxArraySize=200001
MaxJobCount=300000
EnforcePartLimits=NO
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=4,bf_continue,bf_window=10080,bf_resolution=60,sched_interval=4,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
DefMemPerCPU=500
Licenses=matlab:4
PriorityType=priority/multifactor
PriorityDecayHalfLife=7-0
PriorityCalcPeriod=1
PriorityMaxAge=1-0
PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityWeightJobSize=500
PriorityWeightPartition=1000
PriorityWeightQOS=5000
PriorityWeightTRES=CPU=100,GRES/gpu=1000
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={ports["dbd"]}
AccountingStoragePass={h}/munge/socket
AccountingStorageEnforce=associations,limits,qos,safe
AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:v100
AccountingStoreFlags=job_comment,job_script
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherParams=OverMemoryKill
JobAcctGatherFrequency=task=2
{nodes}
PartitionName=gpu Nodes={gpu} Default=YES MaxTime=2-0 DefaultTime=1:00:00 PriorityJobFactor=20 PriorityTier=10 State=UP
PartitionName=cpu Nodes={CPU.range} MaxTime=UNLIMITED DefaultTime=10 PriorityJobFactor=10 PriorityTier=10 State=UP
PartitionName=debug Nodes=v100-1,cpu-1 MaxTime=30 MaxNodes=1 MaxMemPerNode=8000 QOS=debug PriorityTier=50 State=UP
PartitionName=long Nodes={A100.range} MaxTime=7-0 PriorityTier=5 AllowAccounts=vision State=UP
PartitionName=down Nodes={CPU.range} MaxTime=60 State=DOWN
PartitionName=hid Nodes={CPU.range} MaxTime=60 PriorityTier=10 Hidden=YES State=UP
"""
