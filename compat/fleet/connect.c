/* Makes a program connect to other ports: so a run can stand between the nodes of a fleet, which tell each other only where they listen.
 *
 * COMPAT_LINKS is a list of ADDRESS:PORT=PORT, separated by commas. A connection to the first is made to the second port of the same address. It is
 * preloaded (LD_PRELOAD), and needs no rights. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int connect(int socket, const struct sockaddr *address, socklen_t length) {
  int (*next)(int, const struct sockaddr *, socklen_t) = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
  const char *links = getenv("COMPAT_LINKS");
  struct sockaddr_in to;
  if (links == NULL || address->sa_family != AF_INET || length < sizeof to) return next(socket, address, length);
  memcpy(&to, address, sizeof to);
  char sought[64], host[INET_ADDRSTRLEN];
  inet_ntop(AF_INET, &to.sin_addr, host, sizeof host);
  snprintf(sought, sizeof sought, "%s:%d=", host, ntohs(to.sin_port));
  const char *found = strstr(links, sought);
  if (found == NULL) return next(socket, address, length);
  to.sin_port = htons((unsigned short)atoi(found + strlen(sought)));
  return next(socket, (const struct sockaddr *)&to, sizeof to);
}
