"""Sets up the network of a trial with rtnetlink: Offsite's base image has Python, and no `ip`.

`hub`: makes a bridge in its own network namespace, and adds to it every interface that appears there.
`member INTERFACE ADDRESS PEER`: makes a pair of interfaces; one stays here, the other moves to the network
namespace of process 1, which is the hub's.

Says `ready` on its standard output, and then keeps its network namespace alive.
"""
import errno, os, signal, socket, struct, sys

NEW_LINK, NEW_ADDRESS = 16, 20
REQUEST, ACKNOWLEDGE, CREATE, EXCLUSIVE = 1, 4, 0x400, 0x200
MAKE = CREATE | EXCLUSIVE
NAME, MASTER, INFO, NAMESPACE_OF = 3, 10, 18, 19
KIND, DATA, PEER = 1, 2, 1
ADDRESS, LOCAL = 1, 2
UP, LINK_EVENTS, PREFIX = 1, 1, 24


def netlink(groups=0):
    client = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    client.bind((0, groups))
    return client


def attribute(kind, data):
    length = 4 + len(data)
    return struct.pack('=HH', length, kind) + data + b'\0' * (-length % 4)


def text(value):
    return value.encode() + b'\0'


def number(value):
    return struct.pack('=I', value)


def link(index=0, flags=0):
    return struct.pack('=BxHiII', 0, 0, index, flags, flags)


requests = netlink()


def ask(kind, flags, body):
    head = struct.pack('=IHHII', 16 + len(body), kind, REQUEST | ACKNOWLEDGE | flags, 1, 0)
    requests.send(head + body)
    code = -struct.unpack_from('=i', requests.recv(65536), 16)[0]
    if code:
        raise OSError(code, os.strerror(code))


def bring_up(name):
    ask(NEW_LINK, 0, link(socket.if_nametoindex(name), UP))


def hub():
    ask(NEW_LINK, MAKE, link() + attribute(NAME, text('hub')) + attribute(INFO, attribute(KIND, text('bridge'))))
    bring_up('hub')
    bridge = socket.if_nametoindex('hub')
    events = netlink(LINK_EVENTS)
    print('ready', flush=True)
    known = {name for _, name in socket.if_nameindex()}
    while True:
        names = {name for _, name in socket.if_nameindex()}
        for name in names - known:
            try:
                ask(NEW_LINK, 0, link(socket.if_nametoindex(name)) + attribute(MASTER, number(bridge)))
                bring_up(name)
            except OSError as error:
                # Its member has ended meanwhile.
                if error.errno != errno.ENODEV:
                    raise
        known = names
        try:
            events.recv(65536)
        except OSError as error:
            # There were more events than the socket holds: look again.
            if error.errno != errno.ENOBUFS:
                raise


def member(interface, address, peer):
    other = link() + attribute(NAME, text(peer)) + attribute(NAMESPACE_OF, number(1))
    pair = attribute(KIND, text('veth')) + attribute(DATA, attribute(PEER, other))
    ask(NEW_LINK, MAKE, link() + attribute(NAME, text(interface)) + attribute(INFO, pair))
    packed = socket.inet_aton(address)
    head = struct.pack('=BBBBI', socket.AF_INET, PREFIX, 0, 0, socket.if_nametoindex(interface))
    ask(NEW_ADDRESS, MAKE, head + attribute(LOCAL, packed) + attribute(ADDRESS, packed))
    bring_up('lo')
    bring_up(interface)
    print('ready', flush=True)
    while True:
        signal.pause()


if sys.argv[1] == 'hub':
    hub()
else:
    member(*sys.argv[2:])
