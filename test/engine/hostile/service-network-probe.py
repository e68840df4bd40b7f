# Tries to send to each address, in every way that a process without privileges has: bound to an interface,
# without routes, by the index of the interface in a control message, along a source route, as a broadcast and
# as a multicast. Prints what the kernel says.
import errno, json, socket, struct, sys

port, token, *targets = sys.argv[1:]
port, token = int(port), token.encode()
BIND_TO_DEVICE, DONT_ROUTE, IP_OPTIONS = 25, socket.SO_DONTROUTE, 4
index = socket.if_nametoindex('eth0')
control = [(socket.IPPROTO_IP, 8, struct.pack('=i4s4s', index, b'\0' * 4, b'\0' * 4))]


def strict(address):
    # One hop of a strict source route, padded.
    return bytes([137, 7, 4]) + socket.inet_aton(address) + b'\0'


def sent(address, *, device=False, direct=False, source_route=False, message=False):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        try:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            if device:
                client.setsockopt(socket.SOL_SOCKET, BIND_TO_DEVICE, b'eth0')
            if direct:
                client.setsockopt(socket.SOL_SOCKET, DONT_ROUTE, 1)
            if source_route:
                client.setsockopt(socket.IPPROTO_IP, IP_OPTIONS, strict(address))
            if message:
                client.sendmsg([token], control, socket.MSG_DONTROUTE if direct else 0, (address, port))
            else:
                client.sendto(token, (address, port))
            return 'sent'
        except OSError as error:
            return errno.errorcode.get(error.errno, str(error))


def connected(address, *, device=False, direct=False):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.settimeout(2)
        try:
            if device:
                client.setsockopt(socket.SOL_SOCKET, BIND_TO_DEVICE, b'eth0')
            if direct:
                client.setsockopt(socket.SOL_SOCKET, DONT_ROUTE, 1)
            client.connect((address, port))
            return 'connected'
        except OSError as error:
            return errno.errorcode.get(error.errno, str(error))


ways = [
    {},
    {'device': True},
    {'device': True, 'direct': True},
    {'message': True},
    {'message': True, 'direct': True},
    {'source_route': True, 'device': True},
]
found = {address: [sent(address, **way) for way in ways] for address in targets}
found['tcp'] = {
    address: [connected(address), connected(address, device=True), connected(address, device=True, direct=True)]
    for address in targets
}
everybody = ['255.255.255.255', '10.213.0.255', '224.0.0.1', '224.0.0.251']
found['everybody'] = [sent(address, **way) for address in everybody for way in ways[:5]]
try:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW):
        found['raw'] = 'made'
except OSError as error:
    found['raw'] = errno.errorcode[error.errno]
names = {}
for name in ['example.com', 'host.docker.internal', 'gateway.docker.internal', 'friend']:
    try:
        names[name] = socket.getaddrinfo(name, 80, socket.AF_INET)[0][4][0]
    except socket.gaierror:
        names[name] = None
found['names'] = names
print(json.dumps(found))
