import { join } from 'node:path';
import { mark, type ServiceSpec, type ServiceUnit } from './unit-file.ts';

const name = 'offsite.service';

/**
 * Denies the daemon what it does not need. It needs only the engine's socket, the network and its data
 * folder, because the engine runs the sandboxes. These settings work for a user's services as well. W^X is
 * not among them, because V8 compiles at run time.
 */
const hardening = [
  'NoNewPrivileges=yes',
  'LockPersonality=yes',
  'RestrictRealtime=yes',
  'RestrictSUIDSGID=yes',
  'RestrictNamespaces=yes',
  // AF_NETLINK: the resolver asks the kernel which addresses there are.
  'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK',
  'SystemCallArchitectures=native',
  'UMask=0077',
];

/**
 * Settings that only the system's manager supports. A process can still connect to a socket in a read-only
 * file system.
 */
const systemHardening = [
  'ProtectSystem=strict',
  'ProtectHome=read-only',
  'PrivateTmp=yes',
  'PrivateDevices=yes',
  'ProtectClock=yes',
  'ProtectControlGroups=yes',
  'ProtectHostname=yes',
  'ProtectKernelLogs=yes',
  'ProtectKernelModules=yes',
  'ProtectKernelTunables=yes',
];

/** The daemon's unit. `folder` is where the manager of that scope looks for units. */
export function systemdUnit(spec: ServiceSpec, folder: string): ServiceUnit {
  const isSystem = spec.scope === 'system';
  const target = isSystem ? 'multi-user.target' : 'default.target';
  const systemctl = isSystem ? 'systemctl' : 'systemctl --user';
  const [program = '', ...args] = spec.command;
  const service = [
    'Type=notify',
    // Node cannot write to systemd's socket, so the daemon starts another process for that.
    'NotifyAccess=all',
    // The daemon notifies systemd every few seconds while no loop is stuck. A loop counts as stuck when it is
    // a minute late.
    'WatchdogSec=180',
    'TimeoutStartSec=300',
    `ExecStart=${[quoted(program), ...args.map(quoted)].join(' ')}`,
    'ExecReload=/bin/kill -HUP $MAINPID',
    `EnvironmentFile=-${specifier(spec.environmentFile)}`,
    ...(isSystem && spec.runAs !== undefined ? [`User=${spec.runAs}`] : []),
    'Restart=on-failure',
    'RestartSec=10',
    '# 2 is a mistake in the configuration, which a restart does not correct.',
    '# 130 and 143 are a daemon that got three signals to end.',
    'RestartPreventExitStatus=2',
    'SuccessExitStatus=130 143',
    '# Stopping drains: running trials may end. If one takes longer, the next daemon starts it again.',
    'KillMode=mixed',
    'TimeoutStopSec=900',
    '',
    ...hardening,
    ...(isSystem ? [...systemHardening, capabilities(spec), ...writable(spec.dataFolder)] : []),
  ];
  const lines = [
    `# ${mark} It does not touch a file without this line.`,
    '[Unit]',
    'Description=Offsite: runs queued evaluation trials in local sandboxes',
    'After=network-online.target docker.service',
    'Wants=network-online.target',
    // systemd must not give up if the engine is down for an hour.
    'StartLimitIntervalSec=0',
    '',
    '[Service]',
    ...service,
    '',
    '[Install]',
    `WantedBy=${target}`,
  ];
  return {
    name,
    file: join(folder, name),
    text: `${lines.join('\n')}\n`,
    enabledBy: join(folder, `${target}.wants`, name),
    start: [`${systemctl} daemon-reload`, `${systemctl} enable --now ${name}`, `${systemctl} status ${name}`],
    stop: [`${systemctl} disable --now ${name}`],
    forget: [`${systemctl} daemon-reload`],
  };
}

/** Root keeps only the capability to read all files: program and configuration may be in a user's home. */
function capabilities({ runAs }: ServiceSpec): string {
  return `CapabilityBoundingSet=${runAs === undefined ? 'CAP_DAC_READ_SEARCH' : ''}`;
}

/** systemd creates a folder below /var/lib, for the user that the daemon runs as. */
function writable(dataFolder: string): string[] {
  const [, below] = /^\/var\/lib\/([\w.-]+)$/.exec(dataFolder) ?? [];
  return below === undefined
    ? [`ReadWritePaths=${quoted(dataFolder)}`]
    : [`StateDirectory=${below}`, 'StateDirectoryMode=0700'];
}

/** Quotes a word for a unit's command line, with `%` and `$` escaped. */
function quoted(word: string): string {
  const literal = specifier(word).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('$', '$$$$');
  return /[^\w@%+=:,./$-]/.test(word) || word === '' ? `"${literal}"` : literal;
}

function specifier(text: string): string {
  return text.replaceAll('%', '%%');
}
