import { execa } from 'execa';

/** Milliseconds; it writes one datagram. */
const timeoutMs = 10_000;

/** Tells systemd how the daemon is, where it asked to be told. */
export interface ServiceManager {
  tell(...assignments: string[]): Promise<void>;
}

/**
 * As sd_notify(3) says, with systemd's own program: Node cannot send datagrams to a Unix socket. Nothing
 * happens where no `NOTIFY_SOCKET` is set. What cannot be told is noted once.
 */
export function serviceManager(env: NodeJS.ProcessEnv, note: (message: string) => void): ServiceManager {
  let noted = false;
  return {
    async tell(...assignments) {
      if (!env.NOTIFY_SOCKET) return;
      const { failed, shortMessage } = await execa('systemd-notify', assignments, {
        env: { NOTIFY_SOCKET: env.NOTIFY_SOCKET },
        reject: false,
        timeout: timeoutMs,
      });
      if (failed && !noted) note(`systemd cannot be told: ${shortMessage}`);
      noted ||= failed;
    },
  };
}
