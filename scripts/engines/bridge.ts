import { randomBytes, randomInt } from 'node:crypto';
import { execa } from 'execa';

/** A network bridge for an engine of its own, whose containers reach what this machine reaches. */
export interface Bridge extends AsyncDisposable {
  name: string;
  /** Of the machine on the bridge, and of this one. */
  addresses: { guest: string; host: string };
  /** Adds an interface for a virtual machine, and returns its name. */
  addTap(): Promise<string>;
  /** Connects the network stack of a process to the bridge. */
  lead(pid: number): Promise<void>;
}

/**
 * The addresses are RFC 2544's, which no network uses. The engine for tests does not touch the firewall,
 * because it would empty the chains of the machine's own engine. So the few rules that it needs are made
 * here.
 */
export async function addBridge(): Promise<Bridge> {
  const tag = randomBytes(4).toString('hex');
  const name = `offsite${tag}`;
  const end = `veth${tag}`;
  const tap = `tap${tag}`;
  const net = `198.18.${randomInt(1, 255)}`;
  const addresses = { guest: `${net}.2`, host: `${net}.1` };
  await execa('ip', ['link', 'add', name, 'type', 'bridge']);
  await execa('ip', ['address', 'add', `${addresses.host}/24`, 'dev', name]);
  await execa('ip', ['link', 'set', name, 'up']);
  const rules = [
    ['nat', 'POSTROUTING', '-s', `${net}.0/24`, '!', '-o', name, '-j', 'MASQUERADE'],
    ['filter', 'FORWARD', '-i', name, '-j', 'ACCEPT'],
    ['filter', 'FORWARD', '-o', name, '-j', 'ACCEPT'],
  ] as const;
  const change = async (how: '-I' | '-D') => {
    for (const [table, ...rule] of rules)
      await execa('iptables', ['-w', '-t', table, how, ...rule], { reject: false }); // few machines have none
  };
  await change('-I');
  return {
    name,
    addresses,
    async addTap() {
      await execa('ip', ['tuntap', 'add', 'dev', tap, 'mode', 'tap']);
      await execa('ip', ['link', 'set', tap, 'master', name, 'up']);
      return tap;
    },
    async lead(pid) {
      const inside = (...args: string[]) => execa('nsenter', [`--target=${pid}`, '--net', 'ip', ...args]);
      const peer = ['peer', 'name', 'eth0', 'netns', String(pid)];
      await execa('ip', ['link', 'add', end, 'type', 'veth', ...peer]);
      await execa('ip', ['link', 'set', end, 'master', name, 'up']);
      await inside('link', 'set', 'lo', 'up');
      await inside('address', 'add', `${addresses.guest}/24`, 'dev', 'eth0');
      await inside('link', 'set', 'eth0', 'up');
      await inside('route', 'add', 'default', 'via', addresses.host);
    },
    async [Symbol.asyncDispose]() {
      await change('-D');
      for (const link of [tap, name]) await execa('ip', ['link', 'delete', link], { reject: false });
    },
  };
}
